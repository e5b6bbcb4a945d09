/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 4: a clause needs an action or a predicate. */
/* flags: -xerrtags -e */
/* status: 1 */
/* stderr: [D_SYNTAX] */
BEGIN
END
{
	exit(0);
}
