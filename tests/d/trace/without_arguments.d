/* SPDX-License-Identifier: Apache-2.0 */
/* trace() takes one argument. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_LEN] */
/* stderr: trace( ) prototype mismatch: 0 args passed, 1 expected */
BEGIN
{
	trace();
	exit(0);
}
