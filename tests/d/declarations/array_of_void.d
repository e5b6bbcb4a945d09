/* SPDX-License-Identifier: Apache-2.0 */
/* There are no arrays of void. */
/* status: 1 */
/* stderr: line */
void a[3];
BEGIN
{
	exit(0);
}
