/* SPDX-License-Identifier: Apache-2.0 */
/* args[] beyond the last one. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_ARGS_IDX] */
proc:::exit
{
	trace(args[9]);
}
