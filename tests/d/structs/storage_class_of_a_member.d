/* SPDX-License-Identifier: Apache-2.0 */
/* A member has no storage class. */
/* status: 1 */
/* stderr: line */
struct s { self int a; };
BEGIN
{
	exit(0);
}
