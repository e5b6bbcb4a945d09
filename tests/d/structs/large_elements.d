/* SPDX-License-Identifier: Apache-2.0 */
/* An associative array of structs of 2000 bytes. */
struct large { char bytes[2000]; };
struct large v, a[int];
BEGIN
{
	v.bytes[1999] = 'x';
	a[1] = v;
	printf("%c\n", a[1].bytes[1999]);
	exit(0);
}
/* output:
x

*/
