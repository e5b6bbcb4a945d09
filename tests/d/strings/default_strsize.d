/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21: sizeof of a string is strsize, 256 by default. */
BEGIN
{
	s = "x";
	printf("%d %d\n", sizeof (s), sizeof (string));
	exit(0);
}
/* output:
256 256

*/
