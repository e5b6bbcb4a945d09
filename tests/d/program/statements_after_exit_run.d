/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 2: statements after exit() in the same clause belong to it. */
BEGIN
{
	exit(0);
	printf("after\n");
}
/* output:
after

*/
