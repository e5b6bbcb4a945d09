/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 3: the status of exit(). */
/* status: 7 */
BEGIN
{
	exit(7);
}
/* output:

*/
