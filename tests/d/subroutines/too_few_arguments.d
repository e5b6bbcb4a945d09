/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 20: strlen wants one argument. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_LEN] */
/* stderr: strlen( ) prototype mismatch: 0 args passed, 1 expected */
BEGIN
{
	trace(strlen());
	exit(0);
}
