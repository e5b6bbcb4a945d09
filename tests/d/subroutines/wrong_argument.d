/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 20: strlen wants a string. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_ARG] */
/* stderr: strlen( ) argument #1 is incompatible with prototype: */
BEGIN
{
	trace(strlen(pid));
	exit(0);
}
