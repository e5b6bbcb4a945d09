/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 42: a key cannot be void. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_KEY_TYPE] */
BEGIN
{
	@a[(void)0] = count();
	exit(0);
}
