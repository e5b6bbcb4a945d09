/* SPDX-License-Identifier: Apache-2.0 */
/* exit() wants a number. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_LEN] */
/* stderr: exit( ) prototype mismatch: 0 args passed, 1 expected */
BEGIN
{
	exit();
}
