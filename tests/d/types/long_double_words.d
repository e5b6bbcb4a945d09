/* SPDX-License-Identifier: Apache-2.0 */
/* Types of floating point can be named and measured. */
BEGIN
{
	printf("%d %d\n", sizeof (float), sizeof (double));
	exit(0);
}
/* output:
4 8

*/
