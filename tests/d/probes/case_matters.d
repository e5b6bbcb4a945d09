/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 9: names are matched with their case. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PDESC_ZERO] */
begin
{
	exit(0);
}
