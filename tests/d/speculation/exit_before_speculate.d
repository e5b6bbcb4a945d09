/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 47: exit() counts as data recording. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SPEC_DREC] */
BEGIN
{
	exit(0);
	speculate(1);
}
