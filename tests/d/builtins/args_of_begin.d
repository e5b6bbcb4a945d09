/* SPDX-License-Identifier: Apache-2.0 */
/* BEGIN has no args[]. */
/* status: 1 */
/* stderr: args[ */
BEGIN
{
	trace(args[0]);
	exit(0);
}
