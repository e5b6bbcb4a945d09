/* SPDX-License-Identifier: Apache-2.0 */
/* An inline cannot be assigned to. */
/* status: 1 */
/* stderr: line 8 */
inline int ten = 10;
BEGIN
{
	ten = 3;
	exit(0);
}
