/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 20: the types of keys are fixed by the first use. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_PROTO_ARG] */
BEGIN
{
	@a[1] = count();
	@a["x"] = count();
	exit(0);
}
