/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 9: with -Z a description may match nothing. */
/* flags: -q -Z */
no_such_provider:::nothing
{
	printf("wrong\n");
}
BEGIN
{
	printf("ok\n");
	exit(0);
}
/* output:
ok

*/
