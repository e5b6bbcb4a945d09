/* SPDX-License-Identifier: Apache-2.0 */
/* A function is not loaded. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_DEREF_FUNC] */
BEGIN
{
	trace(*&`vfs_read);
	exit(0);
}
