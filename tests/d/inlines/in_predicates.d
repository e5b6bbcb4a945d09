/* SPDX-License-Identifier: Apache-2.0 */
/* An inline in a predicate. */
inline int wanted = 3;
BEGIN
{
	x = 3;
}
BEGIN
/x == wanted/
{
	printf("found\n");
	exit(0);
}
/* output:
found

*/
