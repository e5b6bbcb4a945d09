/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 20: strjoin wants two arguments. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_LEN] */
/* stderr: strjoin( ) prototype mismatch: 3 args passed, 2 expected */
BEGIN
{
	trace(strjoin("a", "b", "c"));
	exit(0);
}
