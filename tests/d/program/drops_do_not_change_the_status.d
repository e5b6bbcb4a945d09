/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 3: 0 even if an ERROR occurred. */
/* stderr: invalid address */
BEGIN
{
	exit(0);
	x = *(int *)NULL;
}
/* output:

*/
