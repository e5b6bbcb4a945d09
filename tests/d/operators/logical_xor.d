/* SPDX-License-Identifier: Apache-2.0 */
/* D's ^^ gives 1 when exactly one operand is not 0. */
BEGIN
{
	a = 5;
	b = 6;
	z = 0;
	printf("%d %d %d %d\n", a ^^ b, a ^^ z, z ^^ a, z ^^ z);
	exit(0);
}
/* output:
0 1 1 0

*/
