/* SPDX-License-Identifier: Apache-2.0 */
/* '' is an error. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_CHR_NULL] */
BEGIN
{
	trace('');
	exit(0);
}
