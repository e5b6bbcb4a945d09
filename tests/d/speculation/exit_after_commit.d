/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 47: exit() counts as data recording here, too. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DREC_COMM] */
BEGIN
{
	commit(1);
	exit(0);
}
