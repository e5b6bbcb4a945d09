/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21: a string that was never stored is NULL. */
string s;
BEGIN
{
	printf("%d ", s == NULL);
	s = "";
	printf("%d\n", s == NULL);
	exit(0);
}
/* output:
1 0

*/
