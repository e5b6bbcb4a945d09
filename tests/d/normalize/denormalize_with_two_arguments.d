/* SPDX-License-Identifier: Apache-2.0 */
/* denormalize() takes one argument. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DENORMALIZE_PROTO] */
BEGIN
{
	@a = count();
	denormalize(@a, 3);
	exit(0);
}
