/* SPDX-License-Identifier: Apache-2.0 */
/* & of a member of a variable. */
/* status: 1 */
/* stderr: line */
BEGIN
{
	trace(&pid);
	exit(0);
}
