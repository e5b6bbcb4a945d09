/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 43: the beginning of the message. */
/* stderr: dtrace: error in dt_clause_ */
BEGIN
{
	x = *(int *)NULL;
}
BEGIN
{
	exit(0);
}
/* output:

*/
