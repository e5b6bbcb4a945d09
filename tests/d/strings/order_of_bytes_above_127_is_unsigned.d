/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21: bytes are compared as unsigned. */
BEGIN
{
	a = "\xc3";
	printf("%d\n", a > "z");
	exit(0);
}
/* output:
1

*/
