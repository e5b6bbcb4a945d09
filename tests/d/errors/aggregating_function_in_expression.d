/* SPDX-License-Identifier: Apache-2.0 */
/* count() has no value. */
/* status: 1 */
/* stderr: line */
BEGIN
{
	x = count();
	exit(0);
}
