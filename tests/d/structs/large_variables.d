/* SPDX-License-Identifier: Apache-2.0 */
/* A struct of 3000 bytes is assigned. */
struct large { char bytes[3000]; };
struct large v, w;
BEGIN
{
	v.bytes[0] = 'a';
	v.bytes[2999] = 'z';
	w = v;
	printf("%c%c\n", w.bytes[0], w.bytes[2999]);
	exit(0);
}
/* output:
az

*/
