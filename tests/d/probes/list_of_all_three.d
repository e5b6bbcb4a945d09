/* SPDX-License-Identifier: Apache-2.0 */
/* Facts 8: the probes of dtrace are the first ones. */
/* flags: -l */
dtrace:::
{
}
/* output:
   ID   PROVIDER            MODULE                          FUNCTION NAME
    1     dtrace                                                     BEGIN
    2     dtrace                                                     END
    3     dtrace                                                     ERROR
*/
