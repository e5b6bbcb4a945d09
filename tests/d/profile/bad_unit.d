/* SPDX-License-Identifier: Apache-2.0 */
/* A unit that does not exist. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PDESC_ZERO] */
tick-5parsecs
{
	exit(0);
}
