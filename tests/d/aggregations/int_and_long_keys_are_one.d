/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 20: keys are converted to the first signature. */
BEGIN
{
	@[(int32_t)1] = count();
	@[(int64_t)1] = count();
	exit(0);
}
/* output:

        1                2
*/
