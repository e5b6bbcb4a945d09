/* SPDX-License-Identifier: Apache-2.0 */
/* Strings in a predicate. */
BEGIN
{
	s = "go";
}
BEGIN
/s == "stop"/
{
	printf("wrong\n");
}
BEGIN
/s == "go"/
{
	printf("right\n");
	exit(0);
}
/* output:
right

*/
