/* SPDX-License-Identifier: Apache-2.0 */
/* What says off is off. */
/* flags: -q -xerrtags -x zdefs=off */
/* status: 1 */
/* stderr: [D_PDESC_ZERO] */
no_such_provider:::nothing
{
	exit(0);
}
