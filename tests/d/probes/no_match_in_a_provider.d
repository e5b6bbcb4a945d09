/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 9: a provider that exists, and a probe that does not. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PDESC_ZERO] */
/* stderr: does not match any probes */
syscall::no_such_call:entry
{
	exit(0);
}
