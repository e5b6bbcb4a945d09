/* SPDX-License-Identifier: Apache-2.0 */
/* The index of args[] is a constant. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_ARG] */
proc:::exit
{
	x = 0;
	trace(args[x]);
}
