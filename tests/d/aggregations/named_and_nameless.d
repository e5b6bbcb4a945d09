/* SPDX-License-Identifier: Apache-2.0 */
/* @ and @a are two. */
BEGIN
{
	@ = count();
	@a = sum(5);
	@ = count();
	exit(0);
}
/* output:

                2
                5
*/
