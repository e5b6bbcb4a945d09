/* SPDX-License-Identifier: Apache-2.0 */
/* The value of an inline has the declared type. */
inline char small = 200;
BEGIN
{
	printf("%d %d\n", small, sizeof (small));
	exit(0);
}
/* output:
-56 1

*/
