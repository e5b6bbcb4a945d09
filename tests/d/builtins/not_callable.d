/* SPDX-License-Identifier: Apache-2.0 */
/* A built-in variable is no function. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_FUNC_IDKIND] */
BEGIN
{
	trace(pid(1));
	exit(0);
}
