/* SPDX-License-Identifier: Apache-2.0 */
/* args[] of probes that disagree. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_ARGS_MULTI] */
proc:::exit, sched:::on-cpu, io:::start
{
	trace(args[0]);
}
