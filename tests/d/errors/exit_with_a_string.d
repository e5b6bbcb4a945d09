/* SPDX-License-Identifier: Apache-2.0 */
/* The status is a number. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_ARG] */
/* stderr: exit( ) argument #1 is incompatible with prototype: */
BEGIN
{
	exit("0");
}
