/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 44 and 45: an error inside ERROR is counted, not repeated. */
/* stderr: error in ERROR probe enabling */
BEGIN
{
	x = *(int *)NULL;
}
ERROR
{
	y = *(int *)NULL;
	printf("wrong\n");
}
tick-100ms
{
	exit(0);
}
/* output:

*/
