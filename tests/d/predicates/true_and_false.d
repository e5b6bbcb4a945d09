/* SPDX-License-Identifier: Apache-2.0 */
/* A clause runs when its predicate is not 0. */
BEGIN
/1/
{
	printf("one\n");
}
BEGIN
/0/
{
	printf("zero\n");
}
BEGIN
/-1/
{
	printf("minus one\n");
	exit(0);
}
/* output:
one
minus one

*/
