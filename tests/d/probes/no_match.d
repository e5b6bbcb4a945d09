/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 9 and 50. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PDESC_ZERO] */
/* stderr: probe description :::NO_SUCH_PROBE does not match any probes */
NO_SUCH_PROBE
{
	exit(0);
}
