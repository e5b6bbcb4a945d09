/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 11: an argument that is a name stands for the name. */
/* arguments: BEGIN */
dtrace:::$1
{
	printf("%s\n", probename);
	exit(0);
}
/* output:
BEGIN

*/
