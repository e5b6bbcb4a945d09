/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 21: two keys are equal when their bytes up to the NUL are. */
BEGIN
{
	s = "a longer string";
	s = "x";
	a[s] = 1;
	a["x"]++;
	printf("%d\n", a[s]);
	exit(0);
}
/* output:
2

*/
