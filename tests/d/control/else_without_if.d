/* SPDX-License-Identifier: Apache-2.0 */
/* else needs an if. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SYNTAX] */
BEGIN
{
	else {
		trace(1);
	}
	exit(0);
}
