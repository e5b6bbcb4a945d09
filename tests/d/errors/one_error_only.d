/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 49: the first error stops the compilation. */
/* flags: -q */
/* status: 1 */
/* stderr: line 8: failed to resolve first_unknown: Unknown variable name */
BEGIN
{
	trace(first_unknown);
	trace(second_unknown);
	exit(0);
}
