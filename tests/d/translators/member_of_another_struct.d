/* SPDX-License-Identifier: Apache-2.0 */
/* The output has no such member. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_XLATE_MEMB] */
struct output { int a; };
translator struct output < int V > {
	zz = V;
};
BEGIN
{
	exit(0);
}
