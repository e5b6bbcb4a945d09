/* SPDX-License-Identifier: Apache-2.0 */
/* The definition must fit the member. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_XLATE_INCOMPAT] */
struct output { int a; };
translator struct output < int V > {
	a = "text";
};
BEGIN
{
	exit(0);
}
