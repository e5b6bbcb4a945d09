/* SPDX-License-Identifier: Apache-2.0 */
/* A negative constant size is found by the compiler. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_ALLOCA_SIZE] */
BEGIN
{
	p = alloca(-1);
	exit(0);
}
